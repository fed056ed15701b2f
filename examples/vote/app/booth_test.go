package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func booth(env map[string]string) *Booth {
	p, err := ReadPoll(func(k string) string { return env[k] })
	if err != nil {
		panic(err)
	}
	return NewBooth(p)
}

var pets = map[string]string{"POLL": "pets", "TITLE": "Fur & purr", "OPTIONS": "Cats,Dogs", "BALLOT_KEY": "k"}

func ask(t *testing.T, h http.Handler, method, path, kind, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestBooth(t *testing.T) {
	const form, program = "application/x-www-form-urlencoded", "application/json; charset=utf-8"
	cases := map[string]struct {
		reason string
		env    map[string]string

		method, path, kind, body string

		status int
		want   string
	}{
		"Ballot":   {reason: "The ballot shows what is asked, escaped.", env: pets, method: "GET", path: "/", status: 200, want: "<h1>Fur &amp; purr</h1>"},
		"Poll":     {reason: "Programs read the same.", env: pets, method: "GET", path: "/poll", status: 200, want: `"poll":"pets"`},
		"Vote":     {reason: "A vote is counted and signed.", env: pets, method: "POST", path: "/votes", kind: program, body: `{"option":"Cats"}`, status: 201, want: `"receipt":"`},
		"Form":     {reason: "Who votes by the page comes back to it.", env: pets, method: "POST", path: "/votes", kind: form, body: "option=Dogs", status: 303},
		"NoOption": {reason: "A vote for an option that does not exist is refused.", env: pets, method: "POST", path: "/votes", kind: program, body: `{"option":"Fish"}`, status: 400, want: "no such option"},
		"NoJSON":   {reason: "What cannot be read is no vote.", env: pets, method: "POST", path: "/votes", kind: program, body: `Cats`, status: 400, want: "cannot read"},
		"Closed":   {reason: "After the end nothing is counted.", env: map[string]string{"OPTIONS": "a,b", "CLOSES": "2020-01-01T00:00:00Z"}, method: "POST", path: "/votes", kind: program, body: `{"option":"a"}`, status: 409, want: "closed"},
		"Ready":    {reason: "With two options people can come.", env: pets, method: "GET", path: "/healthz", status: 200, want: "true"},
		"NotReady": {reason: "With one they cannot: no pod with this may take the place of one that works.", env: map[string]string{"OPTIONS": "Cats"}, method: "GET", path: "/healthz", status: 503, want: "OPTIONS has 1"},
		"Get":      {reason: "To look is not to vote.", env: pets, method: "GET", path: "/votes", status: 405},
		"Nowhere":  {reason: "There is nothing else.", env: pets, method: "GET", path: "/admin", status: 404},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := ask(t, booth(tc.env).Handler(), tc.method, tc.path, tc.kind, tc.body)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%s\n%s %s: want %d with %q, got %d %s", tc.reason, tc.method, tc.path, tc.status, tc.want, w.Code, w.Body)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	h := booth(pets).Handler()
	for _, o := range []string{"Dogs", "Cats", "Dogs"} {
		ask(t, h, "POST", "/votes", "application/json", `{"option":"`+o+`"}`)
	}
	var shown struct {
		Counts []Count `json:"counts"`
	}
	if err := json.Unmarshal(ask(t, h, "GET", "/poll", "", "").Body.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Counts) != 2 || shown.Counts[0] != (Count{"Cats", 1}) || shown.Counts[1] != (Count{"Dogs", 2}) {
		t.Errorf("want Cats 1, Dogs 2 in the ballot's order, got %v", shown.Counts)
	}
	page := ask(t, h, "GET", "/", "", "").Body.String()
	if strings.Index(page, "Dogs") > strings.Index(page, "Cats") {
		t.Errorf("the page shows the most votes first, got %s", page)
	}
}

// TestServeEnds: a server that is stopped answers the requests in progress.
func TestServeEnds(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	arrived := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(arrived)
			<-ctx.Done()
			w.WriteHeader(http.StatusTeapot)
		}))
	}()
	answered := make(chan int, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answered <- 0
			return
		}
		_ = r.Body.Close()
		answered <- r.StatusCode
	}()
	<-arrived
	stop()
	if got := <-answered; got != http.StatusTeapot {
		t.Errorf("want the request under way answered, got %d", got)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("serve(...): %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server does not end")
	}
}
