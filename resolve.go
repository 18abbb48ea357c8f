package weir

import "context"

// resolveSubject says which limits apply to a subject: the first level that has any wins whole.
func (l *Limiter) resolveSubject(ctx context.Context, s Subject, mode ResolveMode) (*Resolved, error) {
	r, _, err := l.resolveKept(ctx, s, mode)
	return r, err
}

// resolveKept is resolveSubject, and also returns the subject that the cache keeps the resolution under.
func (l *Limiter) resolveKept(
	ctx context.Context, s Subject, mode ResolveMode,
) (r *Resolved, key Subject, err error) {
	key = l.cacheKey(s)
	if mode != Fresh {
		if r := l.cache.get(key, l.leases.high.Load()); r != nil || mode == Cached {
			return r, key, nil
		}
	}
	generation := l.cache.generation.Load()
	config, err := l.readConfig(ctx, s)
	if err != nil {
		return nil, key, classify(err)
	}
	if config.Known {
		key = s // it may have been declared since
	}
	levels := config.Levels
	if len(l.options.Limits) > 0 {
		levels = append(levels[:len(levels):len(levels)], LevelLimits{LevelLimiter, l.options.Limits})
	}
	r = &Resolved{Undeclared: !config.Known}
	if len(levels) > 0 {
		r.Level, r.Limits, r.Hidden = levels[0].Level, levels[0].Limits, levels[1:]
	}
	if config.Cascade {
		r.Parent = config.Parent
	}
	return l.cache.put(key, r, l.leases.high.Load(), generation), key, nil
}

// cacheKey is the subject under which a resolution is kept. Where the store says which entities it
// declares, all others are one: a million of them need not be looked for in a large cache.
func (l *Limiter) cacheKey(s Subject) Subject {
	if l.declarer != nil && !l.declarer.Declared(s.Entity) {
		s.Entity = ""
	}
	return s
}

func (l *Limiter) readConfig(ctx context.Context, s Subject) (*Config, error) {
	reader, ok := l.backend.(ConfigReader)
	if !ok {
		return &Config{}, nil
	}
	epoch := l.policy.epoch.Load()
	config, err := reader.ReadConfig(ctx, s)
	if err != nil {
		return nil, err
	}
	l.policy.read(config.OnUnavailable, epoch)
	return config, nil
}
