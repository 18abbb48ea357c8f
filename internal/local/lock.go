package local

import (
	"context"
	"time"
)

// pollEvery is the time between two looks at something that changes by itself: a lock, a process, a
// server that starts.
const pollEvery = 50 * time.Millisecond

// Lock waits for an exclusive lock on a file, which is created and never removed. The system
// releases the lock if the process dies.
func Lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		unlock, err := tryLock(name)
		if unlock != nil || err != nil {
			return unlock, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// pause waits for pollEvery.
func pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
