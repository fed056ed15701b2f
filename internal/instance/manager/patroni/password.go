package patroni

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Password is the password of Patroni's API in a mounted file, like Patroni's own copy.
type Password struct {
	file string

	mu   sync.Mutex
	last string
}

// PasswordFile returns the password in a file.
func PasswordFile(file string) *Password {
	p := &Password{file: file}
	if now, err := p.read(); err == nil {
		p.last = now
	}
	return p
}

// candidates returns the password in the file and, if that is another one, the one that was
// accepted last, which Patroni uses until it reloads.
func (p *Password) candidates() ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, err := p.read()
	if err != nil && p.last == "" {
		return nil, fmt.Errorf("cannot read the password of Patroni's API: %w", err)
	}
	if err != nil || now == p.last {
		return []string{p.last}, nil
	}
	if p.last == "" {
		return []string{now}, nil
	}
	return []string{now, p.last}, nil
}

func (p *Password) accepted(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = password
}

func (p *Password) read() (string, error) {
	data, err := os.ReadFile(p.file)
	return strings.TrimSpace(string(data)), err
}
