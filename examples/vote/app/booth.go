package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"maps"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"
)

//go:embed ballot.html
var ballotText string

var ballot = template.Must(template.New("ballot").Parse(ballotText))

// mostBytes is the largest size of a vote's request.
const mostBytes = 4 << 10

// A Booth takes and counts the votes of one poll. They are in the memory of this process and are
// lost when it ends.
type Booth struct {
	poll *Poll
	now  func() time.Time

	mu    sync.Mutex
	votes map[string]int
}

// NewBooth returns a booth for a poll, without votes.
func NewBooth(p *Poll) *Booth { return &Booth{poll: p, now: time.Now, votes: map[string]int{}} }

// Handler returns the handler of the booth's requests.
func (b *Booth) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", b.show)
	mux.HandleFunc("GET /poll", b.showPoll)
	mux.HandleFunc("POST /votes", b.take)
	mux.HandleFunc("GET /healthz", b.health)
	return mux
}

// health answers the readiness probe.
func (b *Booth) health(w http.ResponseWriter, _ *http.Request) {
	if ok, wrong := b.poll.Ready(); !ok {
		answer(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "reason": wrong})
		return
	}
	answer(w, http.StatusOK, map[string]any{"ready": true})
}

// Count is the number of votes for an option.
type Count struct {
	Option string `json:"option"`
	Votes  int    `json:"votes"`
}

func (b *Booth) counts() []Count {
	b.mu.Lock()
	votes := maps.Clone(b.votes)
	b.mu.Unlock()
	out := make([]Count, 0, len(b.poll.Options))
	for _, o := range b.poll.Options {
		out = append(out, Count{o, votes[o]})
	}
	return out
}

// show writes the ballot as a page.
func (b *Booth) show(w http.ResponseWriter, _ *http.Request) {
	counts := b.counts()
	slices.SortStableFunc(counts, func(x, y Count) int { return cmp.Compare(y.Votes, x.Votes) })
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
	// An error here means that the client disconnected.
	_ = ballot.Execute(w, map[string]any{"Poll": b.poll, "Counts": counts, "Closed": b.poll.IsClosed(b.now())})
}

// showPoll writes the counts as JSON for programs.
func (b *Booth) showPoll(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"poll": b.poll.Name, "title": b.poll.Title, "counts": b.counts()})
}

// take takes a vote: of a form, or of a program as JSON.
func (b *Booth) take(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostBytes)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isForm := kind != "application/json"
	var vote struct {
		Option string `json:"option"`
	}
	if isForm {
		vote.Option = r.FormValue("option")
	} else if err := json.NewDecoder(r.Body).Decode(&vote); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": "cannot read the vote"})
		return
	}
	switch {
	case !slices.Contains(b.poll.Options, vote.Option):
		answer(w, http.StatusBadRequest, map[string]any{"error": "there is no such option"})
		return
	case b.poll.IsClosed(b.now()):
		answer(w, http.StatusConflict, map[string]any{"error": "the vote is closed"})
		return
	}
	b.mu.Lock()
	b.votes[vote.Option]++
	b.mu.Unlock()
	if isForm {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	answer(w, http.StatusCreated, map[string]any{"poll": b.poll.Name, "option": vote.Option, "receipt": b.poll.Receipt(vote.Option)})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// An error here means that the client disconnected.
	_ = json.NewEncoder(w).Encode(v)
}
