package provision

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
)

const (
	// managedBy is the tag by which the resources of weir's stacks are found.
	managedBy = "ManagedBy"

	maxStackName    = 128
	maxFunctionName = 64
	maxRoleName     = 64
	maxPolicyName   = 128
	maxTags         = 45
	maxTagKey       = 128
	maxTagValue     = 256
)

// logDays returns the retentions that CloudWatch Logs has, in days.
func logDays() []int {
	return []int{
		1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
		3288, 3653,
	}
}

// mistakes collects what is wrong with the options.
type mistakes struct{ list []error }

func (m *mistakes) add(field, value, reason string) {
	if reason != "" {
		m.list = append(m.list,
			&weir.Error{Code: weir.Invalid, Field: field, Value: clip(value), Reason: reason})
	}
}

// clip shortens a value to the 64 characters of [weir.Error].
func clip(value string) string {
	if runes := []rune(value); len(runes) > 64 {
		return string(runes[:63]) + "…"
	}
	return value
}

func (b *builder) check() error {
	m := &mistakes{}
	m.add("stack", b.Stack, b.stackFault())
	if b.Table != "" {
		m.add("table", b.Table, b.tableFault())
	}
	b.checkTogether(m)
	m.add("retention_days", strconv.Itoa(b.RetentionDays), daysFault(b.RetentionDays))
	m.add("archive_days", strconv.Itoa(b.ArchiveDays), daysFault(b.ArchiveDays))
	if !slices.Contains(logDays(), b.LogDays) {
		m.add("log_days", strconv.Itoa(b.LogDays),
			fmt.Sprintf("must be a retention of CloudWatch Logs, one of %d", logDays()))
	}
	m.add("alarm_topic", b.AlarmTopic, arnFault(b.AlarmTopic, "sns", ""))
	m.add("function_role", b.FunctionRole, arnFault(b.FunctionRole, "iam", "role/"))
	m.add("permission_boundary", b.PermissionBoundary,
		arnFault(b.PermissionBoundary, "iam", "policy/"))
	b.checkFormats(m)
	b.checkTags(m)
	slices.SortStableFunc(m.list, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(m.list...)
}

func daysFault(days int) string {
	if days < 1 || days > maxDays {
		return "must be a number of days from 1 to " + strconv.Itoa(maxDays)
	}
	return ""
}

// checkTogether finds options that exclude one another.
func (b *builder) checkTogether(m *mistakes) {
	const noFunction = "is of no use without the function"
	const noTable = "is for a table that the stack makes, not for one that exists"
	for _, x := range []struct {
		wrong                bool
		field, value, reason string
	}{
		{b.Existing && b.Table == "", "existing", "true", "needs the name of the table"},
		{
			b.Existing && b.NoAggregator && b.NoAlarms && b.NoPolicies, "existing", "true",
			"leaves nothing for the stack: no table, function, alarms or policies",
		},
		{b.Existing && b.Lean, "lean", "true", noTable},
		{b.Existing && b.Protected, "protected", "true", noTable},
		{b.Existing && b.Recovery, "recovery", "true", noTable},
		{
			b.NoAlarms && b.AlarmTopic != "", "alarm_topic", b.AlarmTopic,
			"is of no use without alarms",
		},
		{
			b.FunctionRole != "" && b.PermissionBoundary != "", "permission_boundary",
			b.PermissionBoundary, "is for the role that the stack makes, and another role is given",
		},
		{b.NoAggregator && b.FunctionRole != "", "function_role", b.FunctionRole, noFunction},
		{
			b.NoAggregator && b.PermissionBoundary != "", "permission_boundary",
			b.PermissionBoundary, noFunction,
		},
		{b.NoAggregator && b.Refill, "refill", "true", noFunction},
		{b.NoAggregator && b.Tracing, "tracing", "true", noFunction},
	} {
		if x.wrong {
			m.add(x.field, x.value, x.reason)
		}
	}
}

func (b *builder) stackFault() string {
	name := b.Stack
	if name == "" {
		return ""
	}
	if reason := stackNameFault(name); reason != "" {
		return reason
	}
	switch {
	case !b.NoAggregator && len(name)+len("-aggregator") > maxFunctionName:
		return "is too long: its function {stack}-aggregator may have " +
			strconv.Itoa(maxFunctionName) + " characters"
	case b.Table == "" && len(name) < minTableName:
		return "is also the name of the table, which has at least " + strconv.Itoa(minTableName) +
			" characters"
	}
	return ""
}

// stackNameFault returns the reason why CloudFormation would refuse the name of a stack.
func stackNameFault(name string) string {
	switch {
	case name == "" || !isLetter(name[0]) || !only(name, "-"):
		return "must be a letter, and then letters, digits and hyphens"
	case len(name) > maxStackName:
		return "must have at most " + strconv.Itoa(maxStackName) + " characters"
	}
	return ""
}

const (
	minTableName = 3
	maxTableName = 255
	// maxPolicyTable is the longest name with which the policies, which repeat it, have at most the
	// 6,144 characters that a managed policy may have.
	maxPolicyTable = 128
)

func (b *builder) tableFault() string {
	name := b.Table
	switch {
	case len(name) < minTableName || len(name) > maxTableName || !only(name, "_.-"):
		return "must be the name of a table, of 3 to 255 letters, digits, '_', '.' and '-'"
	case len(name) > maxPolicyTable && !b.NoPolicies:
		return fmt.Sprintf("has more than %d characters, so the policies would be too long: "+
			"leave them out", maxPolicyTable)
	}
	return ""
}

// checkFormats checks the formats of names, and with the name of the stack also what they make.
func (b *builder) checkFormats(m *mistakes) {
	good := b.stackFault() == ""
	for _, f := range []struct {
		field, format, longest string
		most                   int
		made                   bool
	}{
		{
			"role_name_format", b.RoleNameFormat, "-aggr", maxRoleName,
			good && !b.NoAggregator && b.FunctionRole == "",
		},
		{
			"policy_name_format", b.PolicyNameFormat, "-ns-read", maxPolicyName, good && !b.NoPolicies,
		},
	} {
		rest := strings.Replace(f.format, placeholder, "", 1)
		most := strconv.Itoa(f.most)
		switch {
		case !strings.Contains(f.format, placeholder):
			m.add(f.field, f.format, "must contain {} once, for the name that it has by default")
		case strings.Contains(rest, placeholder) || !only(rest, "+=,.@_-"):
			m.add(f.field, f.format,
				"must have, besides one {}, only letters, digits, and any of + = , . @ _ -")
		case len(rest)+len("a"+f.longest) > f.most:
			m.add(f.field, f.format, "is too long: a name has at most "+most+" characters")
		case f.made && len(rest)+len(b.Stack+f.longest) > f.most:
			m.add(f.field, f.format, "is too long for the stack "+strconv.Quote(clip(b.Stack))+
				": a name has at most "+most+" characters")
		}
	}
}

func (b *builder) checkTags(m *mistakes) {
	if len(b.Tags) > maxTags {
		m.add("tags", strconv.Itoa(len(b.Tags)), "are too many: at most "+strconv.Itoa(maxTags))
	}
	for _, key := range sortedKeys(b.Tags) {
		value := b.Tags[key]
		switch {
		case key == managedBy:
			m.add("tags", key, "is weir's own tag")
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			m.add("tags", key, "begins with aws:, which is AWS's own")
		case key == "" || len([]rune(key)) > maxTagKey:
			m.add("tags", key, "must have a name of 1 to "+strconv.Itoa(maxTagKey)+" characters")
		case len([]rune(value)) > maxTagValue:
			m.add("tags."+key, value, "must have at most "+strconv.Itoa(maxTagValue)+" characters")
		case !only(key, tagSigns):
			m.add("tags", key, "must have only letters, digits, spaces and "+tagSigns[1:])
		case !only(value, tagSigns):
			m.add("tags."+key, value, "must have only letters, digits, spaces and "+tagSigns[1:])
		}
	}
}

// tagSigns are what tags may contain on every service, besides letters and digits of ASCII.
const tagSigns = " _.:/=+-@"

// arnFault says what is wrong with an ARN of a service whose last part has a prefix.
func arnFault(arn, service, prefix string) string {
	if arn == "" {
		return ""
	}
	const parts = 6
	part := strings.SplitN(arn, ":", parts)
	if len(part) != parts || part[0] != "arn" || !strings.HasPrefix(part[1], "aws") ||
		!only(part[1], "-") || part[2] != service {
		return "must be the ARN of " + example(service, prefix)
	}
	region, account, last := part[3], part[4], part[5]
	ofAWS := prefix == "policy/" && account == "aws"
	name, has := strings.CutPrefix(last, prefix)
	switch {
	case (service == "iam") != (region == "") || !only(region, "-"),
		!ofAWS && !isAccount(account),
		!has || name == "" || !only(name, "/+=,.@_-") || (service == "sns" && !only(name, "_-.")):
		return "must be the ARN of " + example(service, prefix)
	}
	return ""
}

// example says how an ARN looks.
func example(service, prefix string) string {
	if service == "sns" {
		return "an SNS topic, like arn:aws:sns:eu-central-1:123456789012:alarms"
	}
	return "a " + strings.TrimSuffix(prefix, "/") + ", like arn:aws:iam::123456789012:" + prefix +
		"limits"
}

func isAccount(id string) bool { return len(id) == 12 && strings.Trim(id, "0123456789") == "" }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// only reports whether a text has only letters and digits of ASCII, and the given other characters.
func only(text, others string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && (c < '0' || '9' < c) && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

func sortedKeys(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }
