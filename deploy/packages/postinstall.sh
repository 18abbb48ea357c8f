#!/bin/sh
# Runs after the package was installed or upgraded. A new service is not started, because its limits
# should be edited first.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	systemctl try-restart weir.service || true
fi
