package testkit

import (
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// The Python library works on a table of testkit, on testkit's server.
func TestZAE(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	table := d.Table(t, nil)
	const program = `
import sys, boto3, zae_limiter
from importlib.metadata import version
boto3.resource("dynamodb").Table(sys.argv[1]).put_item(Item={"PK": "p", "SK": "s"})
print(version("zae-limiter"))`
	cmd := ZAE(t).Command(t.Context(), "python", "-c", program, table)
	cmd.Env = append(cmd.Env, d.Environment()...)
	if got := strings.TrimSpace(Run(t, cmd)); got != "0.17.0" {
		t.Errorf("got version %q, want 0.17.0", got)
	}
	out, err := d.Client().Scan(t.Context(), &ddb.ScanInput{TableName: &table})
	if err != nil || out.Count != 1 {
		t.Errorf("got %v, %v, want the one item that Python wrote", out, err)
	}
}

func TestMoto(t *testing.T) {
	t.Parallel()
	endpoint := Moto(t)
	client := ddb.NewFromConfig(LocalConfig(endpoint))
	out, err := client.ListTables(t.Context(), &ddb.ListTablesInput{})
	if err != nil || len(out.TableNames) != 0 {
		t.Errorf("got %v, %v, want an empty AWS", out, err)
	}
}
