package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// leastOptions is how many options a vote needs.
const leastOptions = 2

// A Poll is what people vote on.
type Poll struct {
	// Name distinguishes one poll from the next.
	Name  string
	Title string

	// Options are in the order in which the ballot shows them.
	Options []string

	// Closes is when the last vote is taken. If it is zero the poll stays open.
	Closes time.Time

	// key signs receipts.
	key []byte
}

// ReadPoll reads a poll from the environment: POLL, TITLE, OPTIONS (with commas between them),
// CLOSES (like 2027-01-31T18:00:00Z) and BALLOT_KEY.
func ReadPoll(getenv func(string) string) (*Poll, error) {
	p := &Poll{Name: getenv("POLL"), Title: getenv("TITLE"), key: []byte(getenv("BALLOT_KEY"))}
	if p.Name == "" {
		p.Name = "poll"
	}
	if p.Title == "" {
		p.Title = "Vote"
	}
	for o := range strings.SplitSeq(getenv("OPTIONS"), ",") {
		o = strings.TrimSpace(o)
		if o == "" {
			continue
		}
		if slices.Contains(p.Options, o) {
			return nil, fmt.Errorf("cannot make a ballot: OPTIONS has %q twice", o)
		}
		p.Options = append(p.Options, o)
	}
	if text := getenv("CLOSES"); text != "" {
		closes, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("cannot parse CLOSES %q: it is a time like 2027-01-31T18:00:00Z", text)
		}
		p.Closes = closes
	}
	return p, nil
}

// Ready reports whether there are enough options to vote on, and what is wrong if not.
func (p *Poll) Ready() (ok bool, wrong string) {
	if len(p.Options) < leastOptions {
		return false, fmt.Sprintf("a vote needs %d options or more, OPTIONS has %d", leastOptions, len(p.Options))
	}
	return true, ""
}

// IsClosed reports whether no more votes are taken.
func (p *Poll) IsClosed(now time.Time) bool { return !p.Closes.IsZero() && now.After(p.Closes) }

// Receipt returns the receipt of a vote, by which the voter can prove the vote to an owner of the
// key. It is "" without a key.
func (p *Poll) Receipt(option string) string {
	if len(p.key) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, p.key)
	_, _ = mac.Write([]byte(p.Name + "\n" + option))
	return hex.EncodeToString(mac.Sum(nil))
}
