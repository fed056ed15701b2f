package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// stage runs one stage of up or down and prints a line with its duration and the note that run
// returns, for example "already running".
func stage(name string, run func() (string, error)) error {
	start := time.Now()
	note, err := run()
	if err != nil {
		note = "failed"
	}
	stageMu.Lock()
	defer stageMu.Unlock()
	fmt.Printf("%-24s %6.1fs  %s\n", name, time.Since(start).Seconds(), note)
	return err
}

// stageMu keeps stages that run at the same time from mixing their lines.
var stageMu sync.Mutex

// ticker prints what at once, and every 15 seconds again with the elapsed time until the function
// that it returns is called.
func ticker(what string) func() {
	start := time.Now()
	fmt.Fprintln(os.Stderr, what)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(15 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				fmt.Fprintln(os.Stderr, what, time.Since(start).Round(time.Second))
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// tail returns the end of a file, for an error message.
func tail(path string, size int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-size), io.SeekStart)
	}
	b, _ := io.ReadAll(f)
	return string(b)
}
