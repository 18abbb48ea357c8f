package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// configItem returns an entity's configuration item with one limit, changed by with.
func configItem(with schema.Item) schema.Item {
	c := schema.Config{
		Namespace: "ns", Entity: "bot", Resource: "gpt-4",
		Limits: []schema.Limit{limit("rpm", 10, 5, 60)},
	}
	item := c.Item()
	for name, value := range with {
		if item[name] = value; value == nil {
			delete(item, name)
		}
	}
	return item
}

func TestConfigAccess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value types.AttributeValue
		want  schema.Access
		judge bool
	}{
		{nil, schema.AccessInherit, true},
		{schema.Bool(true), schema.AccessOff, true},
		{schema.Bool(false), schema.AccessOn, true},
		{schema.String("bypass"), schema.AccessBypass, true},
		{schema.String("later"), schema.AccessInherit, false},
		{schema.Number(1), schema.AccessInherit, false},
	} {
		item := configItem(schema.Item{"disabled": c.value})
		got := ok[*schema.Config](t)(schema.ParseConfig(item))
		if got.Access != c.want || (len(got.Unjudged) == 0) != c.judge {
			t.Errorf("disabled %s: got %q, unjudged %v", show(c.value), got.Access, got.Unjudged)
		}
		sameItems(t, got.Item(), item)
	}
}

// TestConfigOfLaterVersion decodes attributes that only version 0.17 of the library writes, and
// keeps them.
func TestConfigOfLaterVersion(t *testing.T) {
	t.Parallel()
	item := configItem(schema.Item{
		"cascade": schema.Bool(false), "sched_tz": schema.String("UTC"), "team": schema.String("a"),
		"l_rpm_sched": schema.String("1;x"), "l_rpm_soft": schema.Bool(true),
		"l_hard_soft": schema.Bool(false), "l_hard_cp": schema.Number(1), "l_hard_ra": schema.Number(1),
		"l_hard_rp": schema.Number(1), "l_day_cp": schema.Number(10), "l_day_ra": schema.Number(0),
		"l_day_rp": schema.Number(1), "l_day_rsched": schema.String("1;y"),
		"w_five_cp": schema.Number(1), "w_five_ra": schema.Number(0), "w_five_rp": schema.Number(1),
		"w_five_rsa": schema.Number(18000), "config_version": schema.Number(2),
		"l_gone_sched": schema.String("1;z"), "l_": schema.String("?"),
	})
	c := ok[*schema.Config](t)(schema.ParseConfig(item))
	sameItems(t, c.Item(), item)
	if c.Cascade == nil || *c.Cascade {
		t.Errorf("got cascade %v", c.Cascade)
	}
	got := fmt.Sprintf("%+v %v", c.Limits, c.Unjudged)
	want := "[{Name:day Capacity:10 Refill:0 Seconds:1 Unjudged:[ra rsched]} " +
		"{Name:hard Capacity:1 Refill:1 Seconds:1 Unjudged:[]} " +
		"{Name:rpm Capacity:10 Refill:5 Seconds:60 Unjudged:[sched soft]}] " +
		"[w_five_cp w_five_ra w_five_rp w_five_rsa]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	before := c.Extra
	c.SetLimits([]schema.Limit{limit("tpm", 2, 2, 2), limit("rpm", 1, 1, 1)})
	plain := configItem(schema.Item{
		"cascade": schema.Bool(false), "team": schema.String("a"), "config_version": schema.Number(2),
		"l_rpm_cp": schema.Number(1), "l_rpm_ra": schema.Number(1), "l_rpm_rp": schema.Number(1),
		"l_tpm_cp": schema.Number(2), "l_tpm_ra": schema.Number(2), "l_tpm_rp": schema.Number(2),
		"l_": schema.String("?"),
	})
	sameItems(t, c.Item(), plain)
	if len(c.Unjudged) != 0 || before["w_five_cp"] == nil || c.Limits[0].Name != "rpm" {
		t.Errorf("got unjudged %v, limits %v; what was read: %v", c.Unjudged, c.Limits, before)
	}
}

func TestConfigLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []schema.Config{
		{Namespace: "ns", OnUnavailable: "block", RetentionDays: 30},
		{Namespace: "ns", UsageRetentionDays: 7, TTLMultiplier: new(int64(0))},
		{Namespace: "ns", Resource: "other/model"},
		{Namespace: "ns", Entity: "bot", Resource: schema.DefaultResource, Access: schema.AccessBypass},
		{Namespace: "ns", Entity: "bot", Resource: "a", Access: schema.AccessOff, Cascade: new(true)},
	} {
		got := ok[*schema.Config](t)(schema.ParseConfig(c.Item()))
		sameItems(t, got.Item(), c.Item())
		if got.Key() != c.Key() || got.Entity != c.Entity || got.Resource != c.Resource ||
			got.Extra != nil {
			t.Errorf("got %+v, want %+v", got, c)
		}
	}
}

// TestConfigRetention checks the retention that applies, also of a configuration that does not exist
// and of values that weir does not write.
func TestConfigRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                     string
		config                   *schema.Config
		usage, audit, multiplier int64
	}{
		{"no configuration", nil, 90, 90, 7},
		{"nothing set", &schema.Config{}, 90, 90, 7},
		{"all set", &schema.Config{UsageRetentionDays: 1, RetentionDays: 2, TTLMultiplier: new(int64(3))}, 1, 2, 3},
		{"switched off", &schema.Config{TTLMultiplier: new(int64(0))}, 90, 90, 0},
		{"below 1", &schema.Config{UsageRetentionDays: -1, RetentionDays: -1, TTLMultiplier: new(int64(-1))}, 90, 90, -1},
	} {
		config := c.config
		if config != nil {
			config.Namespace = "ns"
			config = ok[*schema.Config](t)(schema.ParseConfig(config.Item()))
		}
		if config.UsageDays() != c.usage || config.AuditDays() != c.audit || config.BucketTTLMultiplier() != c.multiplier {
			t.Errorf("%s: got %d, %d, %d, want %d, %d, %d", c.name, config.UsageDays(), config.AuditDays(),
				config.BucketTTLMultiplier(), c.usage, c.audit, c.multiplier)
		}
	}
}

func TestConfigMalformed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attribute string
		value     types.AttributeValue
		want      string
	}{
		{"PK", schema.String("ns"), "has no namespace"},
		{"PK", schema.String("ns/BUCKET#a"), "is not that of a configuration item"},
		{"SK", schema.String("#META"), `"#META" is not that of a configuration item`},
		{"SK", schema.String("#CONFIG#"), "is not that of a configuration item"},
		{"entity_id", schema.String("x"), "does not agree with the key"},
		{"resource", schema.String("x"), "does not agree with the key"},
		{"cascade", schema.String("x"), "is neither true nor false"},
		{"on_unavailable", schema.Number(1), "on_unavailable 1 is not a string"},
		{"audit_retention_days", schema.String("x"), "is not a number"},
		{"usage_retention_days", schema.String("x"), "is not a number"},
		{"bucket_ttl_multiplier", schema.String("x"), "is not a number"},
		{"l_rpm_cp", schema.Number(0), "l_rpm_cp 0 is not above 0"},
		{"l_rpm_rp", schema.Number(-1), "l_rpm_rp -1 is not above 0"},
		{"l_rpm_ra", schema.Number(-1), "l_rpm_ra -1 is below 0"},
		{"l_rpm_ra", nil, "l_rpm_ra is missing"},
		{"l_rpm_rp", nil, "l_rpm_rp is missing"},
		{"l_rpm_rp", schema.Null(), "l_rpm_rp NULL is not a number"},
	} {
		_, err := schema.ParseConfig(configItem(schema.Item{c.attribute: c.value}))
		checkMalformed(t, err, c.attribute, c.want)
	}
	resource := (&schema.Config{Namespace: "ns", Resource: "a"}).Item()
	resource["SK"] = schema.String("#CONFIG#a")
	_, err := schema.ParseConfig(resource)
	checkMalformed(t, err, "SK", "is not that of a configuration item")
	if !strings.Contains(err.Error(), `item "ns/RESOURCE#a" "#CONFIG#a"`) {
		t.Errorf("got %v, which names no item", err)
	}
}
