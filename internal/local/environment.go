package local

import (
	"fmt"
	"strings"
)

// Region is the region of a DynamoDB on this machine, which has none.
const Region = "us-east-1"

// credentials are a key and a secret that DynamoDB Local does not check.
const credentials = "local"

// Variable is a variable of the environment.
type Variable struct{ Name, Value string }

// Environment returns the variables with which weir, and every program with an AWS SDK, uses the
// server. The keys are not secret: DynamoDB Local does not check them, but an SDK needs some.
func (s *Settings) Environment() []Variable {
	return []Variable{
		{"WEIR_STORE", s.StoreURL()},
		{"AWS_ENDPOINT_URL_DYNAMODB", s.Endpoint()},
		{"AWS_ENDPOINT_URL_DYNAMODB_STREAMS", s.Endpoint()},
		{"AWS_REGION", Region},
		{"AWS_DEFAULT_REGION", Region},
		{"AWS_ACCESS_KEY_ID", credentials},
		{"AWS_SECRET_ACCESS_KEY", credentials},
	}
}

// Shells returns the shells for which [Export] writes.
func Shells() []string { return []string{"sh", "fish", "powershell"} }

// Export returns the lines that set variables in a shell, which is one of [Shells].
func Export(shell string, vars []Variable) string {
	var b strings.Builder
	for _, v := range vars {
		switch shell {
		case "fish":
			value := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v.Value)
			fmt.Fprintf(&b, "set -gx %s '%s'\n", v.Name, value)
		case "powershell":
			fmt.Fprintf(&b, "$Env:%s = '%s'\n", v.Name, strings.ReplaceAll(v.Value, "'", "''"))
		default:
			fmt.Fprintf(&b, "export %s='%s'\n", v.Name, strings.ReplaceAll(v.Value, "'", `'\''`))
		}
	}
	return b.String()
}
