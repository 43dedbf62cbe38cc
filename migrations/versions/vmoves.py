"""Add vm moves table"""

import sqlalchemy as sa
from alembic import op

revision = "8bdf5929c5a6"
down_revision = "8f848eb45d03"


def upgrade():
    op.create_table(
        "vmoves",
        sa.Column("created_at", sa.DateTime),
        sa.Column("updated_at", sa.DateTime),
        sa.Column("deleted_at", sa.DateTime),
        sa.Column("deleted", sa.Integer),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("notification_uuid", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("instance_name", sa.String(255), nullable=False),
        sa.Column("source_host", sa.String(255)),
        sa.Column("dest_host", sa.String(255)),
        sa.Column("start_time", sa.DateTime),
        sa.Column("end_time", sa.DateTime),
        sa.Column("type", sa.String(36)),
        sa.Column("status", sa.String(255)),
        sa.Column("message", sa.Text),
        sa.UniqueConstraint("uuid", name="uniq_vmove0uuid"),
    )
