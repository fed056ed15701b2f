package functions

// workers run calls on goroutines of their own, and keep some of these: a new
// goroutine's stack would have to grow each time, and growing it costs a tenth of
// a call.
type workers struct {
	// calls reaches a worker that waits for one.
	calls chan func()

	// waiting has room for as many workers as may wait.
	waiting chan struct{}
}

func newWorkers(waiting int) *workers {
	return &workers{calls: make(chan func()), waiting: make(chan struct{}, waiting)}
}

// start f on a worker that waits, else on a new one: it never waits itself, also
// while other calls are stuck.
func (w *workers) start(f func()) {
	select {
	case w.calls <- f:
	default:
		go w.work(f)
	}
}

func (w *workers) work(f func()) {
	for {
		f()
		select {
		case w.waiting <- struct{}{}:
		default:
			return
		}
		f = <-w.calls
		<-w.waiting
	}
}
