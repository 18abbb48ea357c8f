package local

import (
	"os"
	"os/exec"
	"testing"
)

// TestBornAt checks that a process has one time of birth, and none after its end, even if its parent
// has not asked for its exit status.
func TestBornAt(t *testing.T) {
	t.Parallel()
	first, err := bornAt(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if second, err := bornAt(os.Getpid()); second == "" || second != first || err != nil {
		t.Errorf("got %q and %q, %v, want the same", first, second, err)
	}
	input, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat") //nolint:noctx // It ends with its input.
	cmd.Stdin = input
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = input.Close()
	if born, err := bornAt(cmd.Process.Pid); born == "" || err != nil {
		t.Errorf("got %q, %v, want a time", born, err)
	}
	_ = output.Close()
	for {
		born, err := bornAt(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if born == "" {
			break
		}
		if err := pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
