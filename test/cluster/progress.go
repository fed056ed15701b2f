package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// stage runs one stage of up and prints it as a line with its seconds. What it
// returns besides the error says how it went, for example "already running".
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

// stageMu keeps the lines of stages that run at the same time apart.
var stageMu sync.Mutex

// ticker says every 15 seconds that something long still goes on, and returns
// what ends it.
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
