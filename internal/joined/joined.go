// Package joined takes apart errors that [errors.Join] has joined.
package joined

// Errors returns the errors that are joined in err, in order, including those that are joined in
// them. It returns err alone if no errors are joined in it, and nothing for nil.
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
