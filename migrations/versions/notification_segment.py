"""Add segment and message to notifications"""

import sqlalchemy as sa
from alembic import op

revision = "13adff5efb9a"
down_revision = "8bdf5929c5a6"


def upgrade():
    op.add_column("notifications", sa.Column("failover_segment_uuid", sa.String(36)))
    op.add_column("notifications", sa.Column("message", sa.Text))
