package run

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/gtid"
)

const (
	// archivePoll is how often files are read that grow, and heldPoll how often they are measured.
	archivePoll = time.Second
	heldPoll    = 200 * time.Millisecond

	// connectAgain is the pause before the next connection after one was lost, storeAgain that before the store is
	// tried again, and storeLater that before it is if nothing more can be held.
	connectAgain = 2 * time.Second
	storeAgain   = 5 * time.Second
	storeLater   = 30 * time.Second
)

// A Pace is how often an archive of binary logs does what, and how much it receives.
type Pace struct {
	// Cut is the age at which what was received becomes a segment.
	Cut time.Duration

	// Compare is how often the server is asked what it has executed, and Hold for how long it has to stay the primary
	// until that counts: one that has lost its majority is writable for up to 10 s.
	Compare, Hold time.Duration

	// Look is how often the newest backup is looked for, and Stall for how long nothing may be received of a server
	// that has executed more.
	Look, Stall time.Duration

	// Behind is how old what the server had executed may be that is not archived yet.
	Behind time.Duration

	// Part is for how long the server may lack what is archived until its data counts as another history: a primary may
	// have more to execute at first.
	Part time.Duration

	// Held is how many bytes may be received that are not in the store yet, beside a transaction that is not received
	// whole: more waits on the server. Largest is how many bytes such a transaction may have.
	Held, Largest int64
}

// partAfter is the Part of pace. Servers that start or hand over again and again may lack what is archived for partAtLast times
// that in all.
const (
	partAfter  = 5 * time.Minute
	partAtLast = 6
)

// pace is the pace without another one. Held and Largest are less together than the folder for what was received may have.
var pace = Pace{
	Cut: time.Minute, Compare: 10 * time.Second, Hold: 15 * time.Second, Look: time.Minute, Stall: 3 * time.Minute, Behind: 10 * time.Minute, Part: partAfter,
	Held: 512 << 20, Largest: 1280 << 20,
}

// Archived is how far the binary logs of a server are archived.
type Archived struct {
	// Until is the time until which all that was committed is in the store, or zero if that is not known yet.
	Until time.Time

	// Missing are transactions that were lost: they are in no segment, and the newest backup that was known when this
	// was noticed does not have them. Before is the newest time before the first of them that can be restored to, or zero
	// if it is not known, and Ended is when the first backup with them was complete, or zero while there is none.
	Missing       gtid.Set
	Before, Ended time.Time

	// System is the identifier of the database, or "" while it is not known. BackedUp is true if there is a backup of
	// it, without which nothing can be restored.
	System   string
	BackedUp bool

	// Behind is true while what is written is archived, and is so late that nothing is known to be in the store that was
	// committed in the last ten minutes.
	Behind bool

	// Parted is true if the server has lacked what is archived for so long that its data is an older state, of which another
	// history begins.
	Parted bool

	// Problem describes why nothing is archived now, or is "".
	Problem string
}

// ArchiveLogs archives the binary logs of the Task's server as segments beside its physical backups, until ctx ends. It
// goes on where the newest segments end, whichever server is the primary, and passes on how far it is.
//
// Socket and Report of the Program are not used, and Scratch is a folder for what was received.
func (p *Program) ArchiveLogs(ctx context.Context, t backup.Task, say func(Archived)) error {
	hide := secrets{}
	log := &lines{to: p.Log, hide: &hide}
	defer log.flush()
	t.Method = backup.BinaryLog
	a := &archiver{job: &job{Program: p, task: t, hide: &hide, log: log}, pace: pace, say: say}
	if p.Pace != nil {
		a.pace = *p.Pace
	}
	defer a.close()
	if t.Database.Engine != backupv1.MySQL {
		return backup.Errorf(backup.InvalidTask, "cannot archive binary logs of engine %q: only MySQL has them", t.Database.Engine)
	}
	for ctx.Err() == nil {
		err := a.session(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errHeld) {
			continue
		}
		a.trouble(err)
		pause := connectAgain
		if storeTrouble(err) {
			// The server would send the same again.
			pause = storeLater
		}
		_ = wait(ctx, pause)
	}
	return nil
}

// A primary is the server whose binary logs are archived: a mysql.Server.
type primary interface {
	MayStream(ctx context.Context) error
	IsPrimary(ctx context.Context) error
	Name(ctx context.Context) (string, error)
	System(ctx context.Context) (string, error)
	Purged(ctx context.Context) (gtid.Set, error)
	Executed(ctx context.Context) (gtid.Set, error)
	Now(ctx context.Context) (time.Time, error)
	Stream(ctx context.Context, folder string, without gtid.Set) error
}

var _ primary = (*mysql.Server)(nil)

// An archiver archives binary logs.
type archiver struct {
	*job

	pace  Pace
	say   func(Archived)
	state Archived

	// source is the server, and system the identifier of its data.
	source primary
	system string

	// have are the transactions that are archived, or are before the archive began; known is false until they were
	// read. recorded is when the store was last made to say that there are no others, and cuts is true if there were
	// segments since.
	have     gtid.Set
	known    bool
	recorded time.Time
	cuts     bool

	// part is what was received and is not in the store yet, received is when there was more of it last, and stored is
	// how many bytes of its file are in the store. growing is the size of the transaction that is not received whole, and
	// arrived is how many bytes of it are.
	part            part
	received        time.Time
	stored, growing atomic.Int64
	arrived         int64

	// sample is what the server had executed at a time, until all of that is archived, and sampled is when it was
	// taken. It is vouched for if the server was still the primary a while later. compared is when the server was
	// asked last.
	sample            *segment.Reached
	sampled, compared time.Time
	vouched           bool

	// last is the latest time at which a transaction that is archived was committed, or zero.
	last time.Time

	// had are the transactions that the primary had by the store's record, where there are no segments.
	had gtid.Set

	// lack is what is known of primaries that lack transactions that are archived.
	lack lack

	// stopped is the problem for which it is not known how far the archive is, or "".
	stopped string

	// looked is when the newest backup was looked for, newest is its id, and newestHas are its transactions, with those of
	// the backups before.
	looked    time.Time
	newest    string
	newestHas gtid.Set
}

// receivedFolder is the beginning of the names of folders for what was received.
const receivedFolder = "binlog-"

// session connects to the server, and archives its binary logs until the connection is lost.
func (a *archiver) session(ctx context.Context) error {
	if err := a.begin(ctx); err != nil {
		return err
	}
	return a.archive(ctx)
}

// archive archives binary logs until the connection is lost. Then all that was received whole is in the store: the server
// may be lost, and with it what no other one has any more.
func (a *archiver) archive(ctx context.Context) error {
	folder, err := a.newFolder()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	err = a.receive(ctx, folder)
	err = cmp.Or(a.flush(ctx, folder), err)
	if large, ok := errors.AsType[*tooLargeError](err); ok {
		// A backup has it, and without it nothing after it would be archived.
		a.have = a.have.Union(large.ID)
		a.lose(large.ID, a.last)
	}
	return err
}

// newFolder returns a new folder for what is received, and removes those that were left by a program that was killed.
func (a *archiver) newFolder() (string, error) {
	left, err := filepath.Glob(filepath.Join(a.Scratch, receivedFolder+"*"))
	for _, name := range left {
		err = errors.Join(err, os.RemoveAll(name))
	}
	if err != nil {
		return "", unusable(err)
	}
	folder, err := os.MkdirTemp(a.Scratch, receivedFolder)
	if err != nil {
		return "", unusable(err)
	}
	return folder, nil
}

// receive receives binary logs into a folder, and makes segments of them, until the connection is lost. The error is
// errHeld if the folder has as much as it may.
func (a *archiver) receive(ctx context.Context, folder string) error {
	receiving, stop := context.WithCancelCause(ctx)
	have := a.have
	var streamed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		streamed = a.source.Stream(receiving, folder, have)
	}()
	go a.guard(receiving, folder, stop)
	err := a.follow(ctx, folder, ended)
	held := errors.Is(context.Cause(receiving), errHeld)
	stop(nil)
	<-ended
	switch {
	case err != nil:
		a.sayf("%v", streamed)
		return err
	case held && backup.ReasonOf(streamed) == backup.Interrupted:
		return errHeld
	}
	return cmp.Or(streamed, errEnded)
}

// flush makes segments of all that a folder has whole. While the store is away it waits, and opens it again: credentials
// and the key may be others. When ctx ends, as the pod is being stopped, cleanUpWithin is left.
func (a *archiver) flush(ctx context.Context, folder string) error {
	ctx, cancel := outliving(ctx, cleanUpWithin)
	defer cancel()
	for {
		err := a.read(ctx, folder, true)
		if !storeTrouble(err) && backup.ReasonOf(err) != backup.StoreDenied {
			return err
		}
		for err != nil {
			a.trouble(err)
			if wait(ctx, storeAgain) != nil {
				return err
			}
			err = a.reopen(ctx)
		}
	}
}

// outliving returns a context that ends some time after another one.
func outliving(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

var (
	errHeld  = errors.New("more was received than is to be held before it is in the store")
	errEnded = backup.Errorf(backup.SourceUnreachable, "the server has ended the stream of its binary logs")
)

// guard ends the receiving while more was received than is to be held.
func (a *archiver) guard(ctx context.Context, folder string, stop context.CancelCauseFunc) {
	tick := time.NewTicker(heldPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// It is stored only once it is whole.
		if sizeOf(folder)-a.stored.Load() > a.pace.Held+a.growing.Load() {
			stop(errHeld)
			return
		}
	}
}

// sizeOf returns the size of the files in a folder, as far as it can be read.
func sizeOf(folder string) int64 {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0
	}
	var size int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// reopen opens the store again. Credentials and the key may be others than before.
func (a *archiver) reopen(ctx context.Context) error {
	if a.store != nil {
		_ = a.store.Close()
		a.store = nil
	}
	a.hide.addFolder(a.Store)
	a.hide.addFile(a.Key)
	return a.open(ctx)
}

// begin connects to the store and to the server, and finds out where to go on.
func (a *archiver) begin(ctx context.Context) error {
	// It was found of the primary of before, and there may be a backup since.
	a.state.Parted, a.looked = false, time.Time{}
	if a.server != nil {
		a.server.Close()
		a.server = nil
	}
	if err := a.reopen(ctx); err != nil {
		return err
	}
	if err := a.connect(ctx); err != nil {
		return err
	}
	var err error
	if a.source, err = a.donor(); err != nil {
		return err
	}
	p, err := a.identify(ctx)
	if err != nil {
		return err
	}
	if p.system != a.system {
		a.lack = lack{}
		a.system, a.known, a.newest, a.newestHas, a.sample, a.recorded = p.system, false, "", gtid.Set{}, nil, time.Time{}
		a.had, a.last = gtid.Set{}, time.Time{}
		a.state, a.stopped = Archived{}, ""
	}
	if !a.known {
		if err := a.resume(ctx, p.purged); err != nil {
			return err
		}
	}
	if err := a.gaps(ctx, p.purged); err != nil {
		return err
	}
	// From now on it is known whether there is a backup.
	a.state.System = p.system
	// What the primary has is asked last: a backup may have been completed since it was asked for the rest.
	executed, err := within(ctx, a.source.Executed)
	if err != nil {
		return err
	}
	return a.continues(p.name, executed)
}

// continues returns an error unless a server, which has executed a set, has all that is archived. One that does not
// is given time: a primary may have received more than it has executed. After that its data is an older state, as that of a
// volume that was put back, and what it writes must not follow on what is archived.
func (a *archiver) continues(server string, executed gtid.Set) error {
	extra := a.have.Union(a.had).Union(a.newestHas).Minus(executed)
	if extra.IsEmpty() {
		a.lack, a.state.Parted = lack{}, false
		return nil
	}
	a.lack.add(server, time.Now())
	a.state.Parted = a.lack.present >= a.pace.Part || a.lack.present >= lackStep && a.lack.all >= partAtLast*a.pace.Part
	return backup.Errorf(backup.SourceUnreachable, "the primary lacks transactions that are archived, %d in all: if it still does after %.0f minutes, its data counts as another history", extra.Len(), a.pace.Part.Minutes())
}

// An identity is whose binary logs are archived: the name of the primary, the identifier of its data, and which transactions are
// in none of its binary logs.
type identity struct {
	name, system string
	purged       gtid.Set
}

// lackStep is how much one answer to the next counts at most: nothing is known of a server while it cannot be asked.
const lackStep = time.Minute

// A lack is for how long primaries are known to have lacked transactions that are archived: the present one, and all that did
// one after another.
type lack struct {
	server       string
	asked        time.Time
	present, all time.Duration
}

// add notes that a server lacks some at a time.
func (l *lack) add(server string, at time.Time) {
	if l.server != server {
		l.server, l.asked, l.present = server, at, 0
		return
	}
	step := min(at.Sub(l.asked), lackStep)
	l.asked, l.present, l.all = at, l.present+step, l.all+step
}

// identify returns the identity of the primary. A server that hangs is left for another one.
func (a *archiver) identify(ctx context.Context) (p identity, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if err := a.source.MayStream(ctx); err != nil {
		return p, err
	}
	if err := a.source.IsPrimary(ctx); err != nil {
		return p, err
	}
	if p.name, err = a.source.Name(ctx); err != nil {
		return p, err
	}
	// A new primary answers this, which reads a table, only once it has executed all that it has received
	// (group_replication_consistency), and what it has executed without waiting for that.
	if p.system, err = a.source.System(ctx); err != nil {
		return p, err
	}
	p.purged, err = a.source.Purged(ctx)
	return p, err
}

// follow makes segments of the files in a folder until receiving them has ended.
func (a *archiver) follow(ctx context.Context, folder string, ended <-chan struct{}) error {
	a.part, a.received = part{}, time.Now()
	if !a.vouched {
		// It may be of a server that had lost its majority.
		a.sample = nil
	}
	a.stored.Store(0)
	for {
		select {
		case <-ended:
			return nil
		case <-time.After(archivePoll):
		}
		switch err := a.read(ctx, folder, false); {
		case storeTrouble(err):
			// What is received meanwhile is kept.
			a.trouble(err)
			_ = wait(ctx, storeAgain)
			a.received = time.Now()
		case err != nil:
			return err
		}
		if err := a.compare(ctx); err != nil {
			return err
		}
	}
}

// storeTrouble reports whether an error is one of the store that may pass. For other credentials it is opened again.
func storeTrouble(err error) bool {
	reason := backup.ReasonOf(err)
	return reason == backup.StoreUnreachable || reason == backup.StoreFull || reason == backup.BucketMissing
}

// trouble passes on why nothing is archived now.
func (a *archiver) trouble(err error) {
	if message := a.hide.in(oneLine(err.Error())); message != a.state.Problem {
		a.state.Problem = message
		a.sayf("%s", message)
	}
	a.say(a.state)
}
