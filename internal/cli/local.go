package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/local"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/store"
)

// The names of the hidden commands that keep the server's log, and that become the server.
const (
	keepLogCommand = "keep-log"
	waitCommand    = "wait"
)

func localCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "local",
		Short: "Run a DynamoDB on this machine, to try things out",
		Long: `Run DynamoDB Local on this machine, with a table, to try things out and for development.
It needs no account and no network after the first time. It is not for production.`,
		Example: `  weir local up
  eval "$(weir local env)"
  weir resource set-limits gpt-4o rpm:60
  weir reserve acme gpt-4o rpm=1
  weir local down`,
	})
	cmd.AddCommand(localUpCommand(a), localDownCommand(a), localStatusCommand(a), localLogsCommand(a),
		localEnvCommand(a), localKeepLogCommand(a), localWaitCommand())
	return cmd
}

// localServer returns the server of the user, which has a folder in the user's cache.
func localServer(a *console.App) (*local.Server, error) {
	cache := a.Env("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) { // as the standard says
		var err error
		if cache, err = os.UserCacheDir(); err != nil {
			return nil, fmt.Errorf("%w: set XDG_CACHE_HOME to a folder for files that can be fetched again", err)
		}
	}
	return &local.Server{Folder: filepath.Join(cache, "weir", "local"), Env: a.Env}, nil
}

// localFlags are the flags of weir local up.
type localFlags struct {
	port        int
	table, data string
	lean        bool
	engine      *console.Choice
	repository  string
}

const localUpHelp = `Start DynamoDB Local in the background, on 127.0.0.1, create a table with a stream if there
is none, wait until it answers, and print the environment in which weir and every program with
an AWS SDK uses it. If it runs already, the command says so.

It needs Java 17 or later. Its files (44 MB) are fetched from Maven Central the first time,
checked, and kept in the user's cache folder. Another repository can be named, with
--repository or WEIR_MAVEN_REPOSITORY; a mirror of Maven Central in ~/.m2/settings.xml is used.
Without Java the image amazon/dynamodb-local is used, if docker, podman or nerdctl answers.

The data is in memory, and gone when the server ends, unless --data names a folder for it. One
server runs for each user. DynamoDB Local has no access control: every program on this machine
can use it.`

func localUpCommand(a *console.App) *cobra.Command {
	f := &localFlags{engine: console.NewChoice(append([]string{"auto"}, local.Engines()...)...)}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the server and create the table",
		Long:  localUpHelp,
		Example: `  weir local up
  weir local up --port 8001 --table my-limits --data ~/dynamodb`,
		Args: console.Arguments(0, 0, ""),
	}
	flags := cmd.Flags()
	flags.IntVar(&f.port, "port", local.DefaultPort, "TCP `port` on 127.0.0.1; 0 is any free one")
	flags.StringVar(&f.table, "table", local.DefaultTable, "`name` of the table")
	flags.BoolVar(&f.lean, "lean", false, "keep only keys in the table's index by resource")
	flags.StringVar(&f.data, "data", "", "keep the data in a `folder` (default: in memory)")
	flags.Var(f.engine, "engine", "what runs it; auto is Java, or else the first that answers")
	flags.StringVar(&f.repository, "repository", "",
		"`URL` of the Maven repository to fetch from (default $"+local.RepositoryEnv+")")
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		if err := console.RejectBlankFlags(cmd); err != nil {
			return err
		}
		want, err := f.wanted(cmd)
		if err != nil {
			return err
		}
		body, err := f.up(cmd.Context(), a, want)
		if err != nil {
			return connect.ServiceError(err)
		}
		return a.PrintResult(output, body, body.table)
	})
	return cmd
}

// wanted returns the settings that were given.
func (f *localFlags) wanted(cmd *cobra.Command) (*local.Wanted, error) {
	w := &local.Wanted{}
	given := cmd.Flags().Changed
	if given("port") {
		w.Port = &f.port
	}
	if given("table") {
		w.Table = &f.table
	}
	if given("lean") {
		w.Lean = &f.lean
	}
	if given("data") {
		folder, err := filepath.Abs(f.data)
		if err != nil {
			return nil, err
		}
		w.Data = &folder
	}
	if engine := f.engine.String(); engine != "auto" {
		w.Engine = &engine
	}
	if err := w.Check(); err != nil {
		return nil, console.UsageError(cmd, "%w", err)
	}
	return w, nil
}

// up starts the server and creates the table.
func (f *localFlags) up(ctx context.Context, a *console.App, want *local.Wanted) (*localBody, error) {
	s, err := localServer(a)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.Repository, s.KeepLog = f.repository, []string{self, "local", keepLogCommand}
	s.Wait = []string{self, "local", waitCommand}
	line := a.ProgressLine()
	if line != nil {
		s.Messages = a.Streams.Err
		s.Progress = func(p local.Progress) {
			line.Update(func(int) string {
				return fmt.Sprintf("fetching DynamoDB Local %s: %d of %d files, %d.%d MB",
					local.Version, p.Done, p.Of, p.Bytes/1e6, p.Bytes%1e6/1e5)
			})
		}
	}
	made := false
	state, started, err := s.Up(ctx, want, func(ctx context.Context, s *local.State) error {
		line.Clear()
		table, err := store.Table(s.StoreURL())
		if err != nil {
			return err
		}
		table.Lean = s.Lean
		made, err = table.Create(ctx)
		return kindError(err, s)
	})
	line.Clear()
	if err != nil {
		return nil, err
	}
	body := newLocalBody(state)
	body.Started, body.Created = &started, &made
	return body, nil
}

// kindError says what to do if the folder with the data has a table of the other kind.
func kindError(err error, s *local.State) error {
	if !errors.Is(err, weir.Conflict) || s.Data == "" {
		return err
	}
	kind, flag := "lean", "--lean"
	if s.Lean {
		kind, flag = "full", "--lean=false"
	}
	return fmt.Errorf("%s has a %s table %s already, and the kind of a table cannot be changed: use it "+
		"with %s, or name another table with --table, or another folder with --data",
		s.Data, kind, s.Table, flag)
}

// localBody is a server as --output json prints it.
type localBody struct {
	Running bool `json:"running"`
	// Started and Created are printed by up: whether it has started the server, and created the
	// table.
	Started *bool `json:"started,omitempty"`
	Created *bool `json:"created,omitempty"`
	// Answers is printed by status.
	Answers *bool `json:"answers,omitempty"`

	Endpoint    string            `json:"endpoint,omitempty"`
	Port        int               `json:"port,omitempty"`
	Table       string            `json:"table,omitempty"`
	Kind        string            `json:"kind,omitempty"`
	Data        string            `json:"data,omitempty"`
	Engine      string            `json:"engine,omitempty"`
	PID         int               `json:"pid,omitempty"`
	Container   string            `json:"container,omitempty"`
	Since       string            `json:"since,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`

	state *local.State
}

func newLocalBody(s *local.State) *localBody {
	body := &localBody{
		Running: true, Endpoint: s.Endpoint(), Port: s.Port, Table: s.Table, Kind: "full", Data: s.Data,
		Engine: s.Engine, PID: s.PID, Container: s.Container, Since: s.Started.Format(time.RFC3339),
		Environment: map[string]string{}, state: s,
	}
	if s.Lean {
		body.Kind = "lean"
	}
	for _, v := range s.Environment() {
		body.Environment[v.Name] = v.Value
	}
	return body
}

// table writes the server, and after a start how to use it.
func (body *localBody) table(b *bytes.Buffer) {
	if body.Started != nil {
		b.WriteString(map[bool]string{true: "started", false: "runs already"}[*body.Started] + "\n\n")
	}
	t := text.Table{}
	t.Add("endpoint", body.Endpoint)
	t.Add("port", fmt.Sprint(body.Port))
	t.Add("table", body.Table+" ("+body.Kind+")")
	t.Add("data", body.data())
	if body.PID != 0 {
		t.Add("process", fmt.Sprint(body.PID)+" ("+body.Engine+")")
	} else {
		t.Add("container", body.Container+" ("+body.Engine+")")
	}
	t.Add("since", body.Since)
	if body.Answers != nil {
		t.Add("answers", map[bool]string{true: "yes", false: "no"}[*body.Answers])
	}
	t.Write(b)
	if body.Started != nil {
		b.WriteString("\nTo use it, run eval \"$(weir local env)\", which is\n\n" +
			local.Export("sh", body.state.Environment()))
	}
}

func (body *localBody) data() string {
	if body.Data == "" {
		return "in memory, gone when the server ends"
	}
	return body.Data
}
