package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
)

// fakeAnswers has the answers of the fake OpenAI server, which streams the content in pieces of 20
// characters. The pauses of 50 ms before each piece of the answer that is cut let those before it
// arrive.
const fakeAnswers = `{"fixtures": [
  {
    "match": {"userMessage": "refuse"},
    "response": {"error": {"message": "Too many requests", "type": "requests"}, "status": 429}
  },
  {
    "match": {"userMessage": "break"},
    "response": {"content": "This is an answer that does not arrive to its end, because it is cut."},
    "truncateAfterChunks": 3, "latency": 50
  },
  {
    "match": {"userMessage": "Say hello."},
    "response": {
      "content": "Hello! This is an answer in several pieces.",
      "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    }
  }
]}`

// fakeOpenAI starts a server with OpenAI's API until the test ends, and returns the variables with
// which the libraries for it reach it.
func fakeOpenAI(t *testing.T) []string {
	t.Helper()
	modules := testkit.Node(t, "@copilotkit/aimock@1.43.0")
	answers := filepath.Join(t.TempDir(), "answers.json")
	if err := os.WriteFile(answers, []byte(fakeAnswers), 0o600); err != nil {
		t.Fatal(err)
	}
	cli := filepath.Join(modules, "@copilotkit", "aimock", "dist", "cli.js")
	//nolint:noctx // Start ends it with the test; a context would kill it before.
	process := testkit.Start(t, exec.Command("node", cli, "--port", "0", "--fixtures", answers))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at, err := process.WaitLine(ctx, regexp.MustCompile(`http://127\.0\.0\.1:\d+`))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"OPENAI_BASE_URL=" + at[0] + "/v1", "OPENAI_API_KEY=none"}
}
