package provision

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
)

// Inherited returns the template that takes over a stack of the Python library, with the options
// that the stack has. It adds to o the values of parameters that stay. Its errors are those of
// [Account.Prepare], and [weir.Unsupported] for a stack with names that the template cannot keep.
func (a *Account) Inherited(ctx context.Context, stack string, o *DeployOptions) (*Template, error) {
	info, err := a.Describe(ctx, stack)
	if err != nil {
		return nil, err
	}
	if info.MadeBy != MadeByPython {
		return nil, fault(weir.Conflict, "stack", stack, "was not deployed by the Python library")
	}
	p := info.Parameters
	is := func(name string) bool { return p[name] == "true" }
	t := &Template{
		Stack: stack, Recovery: true, Protected: is("EnableDeletionProtection"), Refill: true,
		NoAggregator:  !is("EnableAggregator") || !is("EnableIAM") && p[roleParameter] == "",
		RetentionDays: number(p["SnapshotRetentionDays"]), LogDays: number(p["LogRetentionDays"]),
		Tracing: is("EnableTracing"), NoArchive: !is("EnableAuditArchival"),
		ArchiveDays: number(p["AuditArchiveGlacierTransitionDays"]),
		NoAlarms:    !is("EnableAlarms"), AlarmTopic: p["AlarmSNSTopicArn"],
		NoPolicies: !is("EnableIAM"), FunctionRole: p[roleParameter],
		RoleNameFormat: p["RoleNameFormat"], Tags: userTags(info.Tags),
	}
	if err := t.inheritNames(info); err != nil {
		return nil, err
	}
	if t.NoAggregator {
		t.FunctionRole, t.PermissionBoundary, t.Refill, t.Tracing = "", "", false, false
	}
	if t.NoAlarms {
		t.AlarmTopic = ""
	}
	kept := map[string]string{}
	if !t.NoAggregator {
		kept["LambdaMemorySize"] = p["LambdaMemorySize"]
		if number(p["LambdaTimeout"]) >= leastFunctionSeconds {
			kept["LambdaTimeout"] = p["LambdaTimeout"]
		}
	}
	maps.Copy(kept, o.Parameters)
	o.Parameters = kept
	return t, nil
}

// roleParameter is the parameter with the ARN of the function's role.
const roleParameter = "AggregatorRoleArn"

func number(text string) int {
	n, _ := strconv.Atoi(text) // 0 is the default
	return n
}

// userTags returns the tags of a stack that its user gave.
func userTags(tags map[string]string) map[string]string {
	own := maps.Clone(tags)
	maps.DeleteFunc(own, func(key, _ string) bool {
		return key == managedBy || strings.HasPrefix(key, "zae-limiter:") ||
			strings.HasPrefix(strings.ToLower(key), "aws:")
	})
	return own
}

// inheritNames sets the formats of names that give roles and policies the names that they have,
// because CloudFormation cannot change them.
func (t *Template) inheritNames(info *Info) error {
	p := info.Parameters
	if p["AggregatorRoleName"] != "" {
		t.RoleNameFormat = ""
	}
	for _, n := range []struct {
		parameter, suffix string
		format            *string
	}{
		{"AggregatorRoleName", "aggr", &t.RoleNameFormat},
		{"AcquireOnlyPolicyName", "acq", &t.PolicyNameFormat},
		{"FullAccessPolicyName", "full", &t.PolicyNameFormat},
		{"ReadOnlyPolicyName", "read", &t.PolicyNameFormat},
	} {
		name := p[n.parameter]
		if name == "" {
			continue
		}
		usual := info.Name + "-" + n.suffix
		before, after, ok := strings.Cut(name, usual)
		format := before + placeholder + after
		if !ok || *n.format != "" && *n.format != format {
			return fault(weir.Unsupported, "parameters."+n.parameter, name,
				"cannot be kept: weir names roles and policies by one format, with "+usual+" in it")
		}
		*n.format = format
	}
	if boundary := p["PermissionBoundary"]; boundary != "" && !strings.HasPrefix(boundary, "arn:") {
		part := strings.Split(info.ID, ":") // arn:PARTITION:cloudformation:REGION:ACCOUNT:stack/…
		if len(part) < 6 {
			return fault(weir.Unsupported, "parameters.PermissionBoundary", boundary, "must be an ARN")
		}
		t.PermissionBoundary = "arn:" + part[1] + ":iam::" + part[4] + ":policy/" + boundary
	} else {
		t.PermissionBoundary = boundary
	}
	t.RoleNameFormat = cmp.Or(t.RoleNameFormat, placeholder)
	t.PolicyNameFormat = cmp.Or(t.PolicyNameFormat, placeholder)
	return nil
}
