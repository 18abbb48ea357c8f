// Package provision describes the AWS stack of weir: a DynamoDB table, the function that counts its
// usage, and what belongs to them. [Template.JSON] writes it as a template of CloudFormation.
// docs/stack.md says what is in it, and how to deploy it.
//
// Resources, parameters and outputs that the Python library's template has too have the names that
// they have there, because CloudFormation knows a resource by its name.
package provision

import (
	"cmp"
	"maps"
	"strings"
)

// Template says what is in a stack.
type Template struct {
	// Version is the version of weir that writes the template, for people. Default: none.
	Version string `json:"-"`

	// Stack is the name that the stack will have. It is not part of the template: only the names
	// that are made from it are checked. Default: they are not checked.
	Stack string `json:"-"`
	// Table is the name of the table. Default: the name of the stack.
	Table string `json:"table,omitempty"`
	// Existing leaves out the table: the stack is for the one that exists with the name Table. Its
	// stream is a parameter of the template. Default: false.
	Existing bool `json:"existing,omitempty"`
	// Lean makes the index by resource have keys only, see [dynamodb.Table]. Default: false.
	//
	// [dynamodb.Table]: https://pkg.go.dev/github.com/weir-limiter/weir/dynamodb#Table
	Lean bool `json:"lean,omitempty"`
	// Protected makes DynamoDB refuse to delete the table. Default: false.
	Protected bool `json:"protected,omitempty"`
	// Recovery enables point-in-time recovery of the table. Default: false.
	Recovery bool `json:"recovery,omitempty"`

	// NoAggregator leaves out the function, and all that is for it. Default: false.
	NoAggregator bool `json:"no_aggregator,omitempty"`
	// RetentionDays is how long usage is kept, in days, from 1 to 3650. Default: 90.
	RetentionDays int `json:"retention_days,omitempty"`
	// Refill makes the function refill buckets ahead, for a table with Python clients.
	// Default: false.
	Refill bool `json:"refill,omitempty"`
	// LogDays is how long the function's log is kept, in days: one of the numbers that CloudWatch
	// Logs has. Default: 30.
	LogDays int `json:"log_days,omitempty"`
	// Tracing sends traces of the function to AWS X-Ray. Default: false.
	Tracing bool `json:"tracing,omitempty"`
	// NoArchive leaves out the bucket for expired audit events. Default: false.
	NoArchive bool `json:"no_archive,omitempty"`
	// ArchiveDays is after how many days, from 1 to 3650, an archived object moves to S3 Glacier
	// Instant Retrieval. Default: 90.
	ArchiveDays int `json:"archive_days,omitempty"`

	// NoAlarms leaves out the alarms. Default: false.
	NoAlarms bool `json:"no_alarms,omitempty"`
	// AlarmTopic is the ARN of the SNS topic that is told of alarms. Default: none.
	AlarmTopic string `json:"alarm_topic,omitempty"`

	// NoPolicies leaves out the managed policies. Default: false.
	NoPolicies bool `json:"no_policies,omitempty"`
	// FunctionRole is the ARN of a role for the function, instead of one in the stack.
	// Default: none.
	FunctionRole string `json:"function_role,omitempty"`
	// PermissionBoundary is the ARN of the policy that bounds the function's role. Default: none.
	PermissionBoundary string `json:"permission_boundary,omitempty"`
	// RoleNameFormat makes the names of roles: {} in it stands for the name that the role has by
	// default. Default: {}.
	RoleNameFormat string `json:"role_name_format,omitempty"`
	// PolicyNameFormat makes the names of managed policies in the same way. Default: {}.
	PolicyNameFormat string `json:"policy_name_format,omitempty"`
	// Tags are added to each resource that can have some, but not to managed policies.
	// Default: none.
	Tags map[string]string `json:"tags,omitempty"`

	// paused leaves out what invokes the function, for a moment of a take-over.
	paused bool
}

// object is an object of JSON.
type object = map[string]any

// builder collects the parts of a template.
type builder struct {
	Template

	parameters, resources, outputs object

	whole object // all of it; nil until it is complete
}

// JSON returns the template. It always has the same bytes for the same options. The error joins a
// [*weir.Error] with code [weir.Invalid] for each option that is wrong.
//
// [*weir.Error]: https://pkg.go.dev/github.com/weir-limiter/weir#Error
// [weir.Invalid]: https://pkg.go.dev/github.com/weir-limiter/weir#Invalid
func (t *Template) JSON() ([]byte, error) {
	b, err := t.build()
	if err != nil {
		return nil, err
	}
	return laidOut(b.whole)
}

// build makes the template.
func (t *Template) build() (*builder, error) {
	b := &builder{Template: *t, parameters: object{}, resources: object{}, outputs: object{}}
	b.setDefaults()
	if err := b.check(); err != nil {
		return nil, err
	}
	b.table()
	if !b.NoAggregator {
		b.aggregator()
		b.archive()
	}
	if !b.NoAlarms {
		b.alarms()
	}
	if !b.NoPolicies {
		b.policies()
	}
	b.whole = object{
		"AWSTemplateFormatVersion": "2010-09-09",

		"Description": "weir: a table of limits, and the function that counts its usage",
		"Resources":   b.resources, "Outputs": b.outputs,
	}
	if len(b.parameters) > 0 {
		b.whole["Parameters"] = b.parameters
	}
	return b, addMetadata(b.whole, &b.Template)
}

func (b *builder) setDefaults() {
	b.RetentionDays = cmp.Or(b.RetentionDays, defaultRetentionDays)
	b.LogDays = cmp.Or(b.LogDays, defaultLogDays)
	b.ArchiveDays = cmp.Or(b.ArchiveDays, defaultArchiveDays)
	b.RoleNameFormat = cmp.Or(b.RoleNameFormat, placeholder)
	b.PolicyNameFormat = cmp.Or(b.PolicyNameFormat, placeholder)
}

// add adds a resource with the tags of the stack.
func (b *builder) add(id, kind string, properties object) object {
	tags := []any{}
	all := map[string]string{managedBy: "weir"}
	maps.Copy(all, b.Tags)
	for _, key := range sortedKeys(all) {
		tags = append(tags, object{"Key": key, "Value": all[key]})
	}
	properties["Tags"] = tags
	return b.addUntagged(id, kind, properties)
}

// addUntagged adds a resource that cannot have tags.
func (b *builder) addUntagged(id, kind string, properties object) object {
	resource := object{"Type": kind, "Properties": properties}
	b.resources[id] = resource
	return resource
}

// fate says what happens to a resource when the stack is deleted, and when an update replaces it:
// Delete or Retain.
func fate(resource object, deleted, replaced string) {
	resource["DeletionPolicy"], resource["UpdateReplacePolicy"] = deleted, replaced
}

// output adds an output that is exported as {stack}-{export}.
func (b *builder) output(id, export, description string, value any) {
	b.outputs[id] = object{
		"Description": description, "Value": value,
		"Export": object{"Name": sub("${AWS::StackName}-" + export)},
	}
}

// number adds a parameter that is a number in a range, and returns the reference to it.
func (b *builder) number(name, description string, value, least, most int) any {
	b.parameters[name] = object{
		"Type": "Number", "Description": description, "Default": value,
		"MinValue": least, "MaxValue": most,
	}
	return ref(name)
}

// text adds a parameter that is a string, and returns the reference to it. Without a default it
// must be given at each deployment.
func (b *builder) text(name, description, value string) any {
	parameter := object{"Type": "String", "Description": description}
	if value != "" {
		parameter["Default"] = value
	}
	b.parameters[name] = parameter
	return ref(name)
}

func ref(id string) any { return object{"Ref": id} }

func attribute(id, name string) any { return object{"Fn::GetAtt": []string{id, name}} }

// sub returns a text in which CloudFormation replaces ${…}.
func sub(text string) any {
	if !strings.Contains(text, "${") {
		return text
	}
	return object{"Fn::Sub": text}
}
