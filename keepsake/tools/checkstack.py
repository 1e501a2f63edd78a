"""The checkstack dialect: what is watched, to be read; every change goes through propose and apply."""

from keepsake.ops import anomalies, checks, incidents
from keepsake.tools import gate
from keepsake.tools.dialect import Dialect, Tool, table

CHECKSTACK = Dialect(
    name="checkstack",
    title="Checkstack",
    instructions="Incidents, checks and anomalies of what is watched. Calls only read. To change anything, call propose"
    " with the operation and its arguments, look at the diff, then call apply with the token; a deletion waits for"
    " an approver in between, and proposal_status tells when it may go on.",
    tools=table(
        Tool("incident.list", incidents.list_, hint="Use it to see what is broken now and what broke before."),
        Tool("healthcheck.status", checks.status, hint="Use it to see how each thing that is watched stands."),
        Tool("anomaly.list", anomalies.list_, hint="Use it to see what is slower or fails more often than it should."),
        *gate.TOOLS.values(),
    ),
    is_gated=True,
    needs_session=True,
)
