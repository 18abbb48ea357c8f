package httpapi

// Role is what a caller may do. Each role includes the weaker ones.
type Role int

// The roles, the weakest first.
const (
	// RoleNone may do nothing that needs a bearer token.
	RoleNone Role = iota
	// RoleRead may ask for status, explanations, children, capacity and activity.
	RoleRead
	// RoleCall may reserve, adjust, complete, cancel and extend as well.
	RoleCall
	// RoleAdmin may change what is configured, and bring limits in a reserve.
	RoleAdmin
)

// String returns the role's word: "none", "read", "call" or "admin".
func (r Role) String() string {
	switch r {
	case RoleRead:
		return "read"
	case RoleCall:
		return "call"
	case RoleAdmin:
		return "admin"
	case RoleNone:
	}
	return "none"
}

// Identity is who a bearer token belongs to.
type Identity struct {
	// Name is how logs call the caller.
	Name string
	// Role is what the caller may do.
	Role Role
}
