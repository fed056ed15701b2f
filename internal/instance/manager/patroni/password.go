package patroni

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Password of Patroni's API, in a mounted file, as Patroni's own copy is.
type Password struct {
	file string

	mu   sync.Mutex
	last string
}

// PasswordFile is a password in a file.
func PasswordFile(file string) *Password {
	p := &Password{file: file}
	if now, err := p.read(); err == nil {
		p.last = now
	}
	return p
}

// candidates are what the file says and, when that is another one, what was
// accepted last: Patroni keeps to it until it is told to reload.
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
