package provision_test

import (
	"fmt"
	"strings"

	"github.com/weir-limiter/weir/provision"
)

func ExampleTemplate_JSON() {
	t := &provision.Template{Stack: "limits", Lean: true, Protected: true, Recovery: true}
	text, err := t.JSON()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Count(string(text), `"Type": "AWS::DynamoDB::Table"`), "table")

	t.Stack = "my_limits"
	_, err = t.JSON()
	fmt.Println(err)
	// Output:
	// 1 table
	// weir: invalid: stack "my_limits": must be a letter, and then letters, digits and hyphens
}
