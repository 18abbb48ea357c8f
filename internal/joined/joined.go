// Package joined takes errors apart that [errors.Join] has made one.
package joined

// Errors returns the errors that are joined in err, in order, and those that are joined in them:
// err alone if it joins none, and nothing for nil.
func Errors(err error) []error {
	if err == nil {
		return nil
	}
	parts, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, part := range parts.Unwrap() {
		all = append(all, Errors(part)...)
	}
	return all
}
