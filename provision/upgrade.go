package provision

import (
	"context"
	"maps"
)

// Upgraded returns the template of this version of weir for a stack, with the options and tags that
// the stack was deployed with. It adds to o the values of the stack's parameters. Its errors are
// those of [Account.Prepare], and [weir.NotFound] for a stack that does not exist.
func (a *Account) Upgraded(ctx context.Context, stack string, o *DeployOptions) (*Template, error) {
	info, err := a.Describe(ctx, stack)
	if err != nil {
		return nil, err
	}
	if info.MadeBy != MadeByWeir || info.made == nil {
		return nil, info.mayUpdate(&Template{Stack: stack}, &DeployOptions{Overwrite: true})
	}
	if err := info.made.newer(stack); err != nil {
		return nil, err
	}
	t := *info.Template
	t.paused = false
	t.Tags = userTags(info.Tags)
	return &t, a.keepParameters(ctx, info, &t, o)
}

// keepParameters adds to o the values that the stack's parameters have, as far as the template still
// has the parameters.
func (a *Account) keepParameters(
	ctx context.Context, info *Info, t *Template, o *DeployOptions,
) error {
	b, err := t.build()
	if err != nil {
		return err
	}
	kept := map[string]string{}
	for name, value := range info.Parameters {
		switch name {
		case codeBucketParameter, codeKeyParameter, streamParameter: // a deployment sets them itself
		default:
			if b.parameters[name] != nil && value != "" {
				kept[name] = value
			}
		}
	}
	maps.Copy(kept, o.Parameters)
	o.Parameters = kept
	bucket := info.Parameters[codeBucketParameter]
	if bucket == "" || o.CodeBucket != "" {
		return nil
	}
	account, err := a.id(ctx)
	if err == nil && bucket != a.codeBucket(account) {
		o.CodeBucket = bucket
	}
	return err
}

// The parameters that a deployment sets itself.
const (
	codeBucketParameter = "CodeBucket"
	codeKeyParameter    = "CodeKey"
)
