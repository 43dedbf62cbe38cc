"""Initial revision"""

import sqlalchemy as sa
from alembic import op

revision = "8f848eb45d03"
down_revision = None
branch_labels = ("masakari",)


def _first_columns():
    return (
        sa.Column("created_at", sa.DateTime),
        sa.Column("updated_at", sa.DateTime),
        sa.Column("deleted_at", sa.DateTime),
        sa.Column("deleted", sa.Integer),
        sa.Column("id", sa.Integer, primary_key=True),
    )


def upgrade():
    op.create_table(
        "failover_segments",
        *_first_columns(),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("service_type", sa.String(255), nullable=False),
        sa.Column("description", sa.Text),
        sa.Column(
            "recovery_method",
            sa.Enum(
                "auto", "reserved_host", "auto_priority", "rh_priority", name="recovery_methods"
            ),
            nullable=False,
        ),
        sa.Column("enabled", sa.Boolean),
        sa.UniqueConstraint("name", "deleted", name="uniq_segment0name0deleted"),
        sa.UniqueConstraint("uuid", name="uniq_segments0uuid"),
    )
    op.create_index("segments_service_type_idx", "failover_segments", ["service_type"])
    op.create_table(
        "hosts",
        *_first_columns(),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("reserved", sa.Boolean),
        sa.Column("type", sa.String(255), nullable=False),
        sa.Column("control_attributes", sa.Text, nullable=False),
        sa.Column(
            "failover_segment_id",
            sa.String(36),
            sa.ForeignKey("failover_segments.uuid"),
            nullable=False,
        ),
        sa.Column("on_maintenance", sa.Boolean),
        sa.UniqueConstraint("name", "deleted", name="uniq_host0name0deleted"),
        sa.UniqueConstraint("uuid", name="uniq_host0uuid"),
    )
    op.create_index("hosts_type_idx", "hosts", ["type"])
    op.create_table(
        "notifications",
        *_first_columns(),
        sa.Column("notification_uuid", sa.String(36), nullable=False),
        sa.Column("generated_time", sa.DateTime, nullable=False),
        sa.Column("source_host_uuid", sa.String(36), nullable=False),
        sa.Column("type", sa.String(36), nullable=False),
        sa.Column("payload", sa.Text),
        sa.Column(
            "status",
            sa.Enum("new", "running", "error", "failed", "ignored", "finished", name="statuses"),
            nullable=False,
        ),
        sa.UniqueConstraint("notification_uuid", name="uniq_notification0uuid"),
    )
