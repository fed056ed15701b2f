package shop

import (
	"crypto/rand"
	"net/http"
	"regexp"
)

// SessionHeader and SessionCookie carry a visitor's session; the header wins.
// Who knows a session may see its cart and its orders.
const (
	SessionHeader = "X-Session"
	SessionCookie = "session"
)

// KeyHeader carries the key by which a repeated order is recognised.
const KeyHeader = "Idempotency-Key"

// A client may choose its own session, so its form is checked; its length keeps
// guesses hopeless only when it is drawn at random, as ours are.
var token = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)

// ValidToken reports whether s may be a session or an idempotency key.
func ValidToken(s string) bool { return token.MatchString(s) }

// NewToken draws a session, an order's id or an idempotency key.
func NewToken() string { return rand.Text() }

// Session returns the session that a request carries, if it is a valid one.
func Session(r *http.Request) (string, bool) {
	s := r.Header.Get(SessionHeader)
	if s == "" {
		if c, err := r.Cookie(SessionCookie); err == nil {
			s = c.Value
		}
	}
	return s, ValidToken(s)
}

// SetSession lets a browser keep the session.
//
// SameSite=Lax is the guard against forged forms: every change is a POST, PUT
// or DELETE, and a browser sends no Lax cookie with one that another site
// caused. Secure is set whenever the visitor came by https.
func SetSession(w http.ResponseWriter, r *http.Request, session string) {
	http.SetCookie(w, &http.Cookie{
		Name:     SessionCookie,
		Value:    session,
		Path:     "/",
		MaxAge:   30 * 24 * 60 * 60,
		HttpOnly: true,
		Secure:   r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
		SameSite: http.SameSiteLaxMode,
	})
}
