package functions

// workers run calls on separate goroutines and keep some of these for the next calls: the stack of
// a new goroutine has to grow, which costs a tenth of a call.
type workers struct {
	// calls passes a call to an idle worker.
	calls chan func()

	// waiting holds an entry for each idle worker. Its capacity is the number
	// of workers that are kept.
	waiting chan struct{}
}

func newWorkers(waiting int) *workers {
	return &workers{calls: make(chan func()), waiting: make(chan struct{}, waiting)}
}

// start runs f on an idle worker, or on a new one if there is none. It never blocks, even
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
