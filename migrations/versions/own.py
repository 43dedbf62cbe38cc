"""Add the tables and indexes of masakari-ng"""

import sqlalchemy as sa
from alembic import op

revision = "ng0001"
down_revision = None
branch_labels = ("masakari_ng",)

_INDEXES = (
    ("masakari_ng_claims_heartbeat_idx", "masakari_ng_claims", ["heartbeat"]),
    ("masakari_ng_journal_notification_idx", "masakari_ng_journal", ["notification_uuid"]),
    (
        "masakari_ng_notifications_report_idx",
        "notifications",
        ["source_host_uuid", "type", "generated_time"],
    ),
    # What lists are filtered by, or sorted by before the time of creation.
    ("masakari_ng_notifications_created_idx", "notifications", ["created_at"]),
    ("masakari_ng_notifications_generated_idx", "notifications", ["generated_time", "created_at"]),
    ("masakari_ng_notifications_updated_idx", "notifications", ["updated_at", "created_at"]),
    ("masakari_ng_notifications_status_idx", "notifications", ["status", "created_at"]),
    ("masakari_ng_notifications_source_idx", "notifications", ["source_host_uuid", "created_at"]),
    ("masakari_ng_notifications_type_idx", "notifications", ["type", "created_at"]),
    ("masakari_ng_vmoves_notification_idx", "vmoves", ["notification_uuid"]),
)


def upgrade():
    # MariaDB keeps each statement at once: a run that was ended in the middle can be repeated.
    op.create_table(
        "masakari_ng_intake",
        sa.Column("source_host_uuid", sa.String(36), primary_key=True),
        sa.Column("type", sa.String(36), primary_key=True),
        sa.Column("reported_at", sa.DateTime),
        if_not_exists=True,
    )
    op.create_table(
        "masakari_ng_claims",
        sa.Column("notification_uuid", sa.String(36), primary_key=True),
        sa.Column("source_host_uuid", sa.String(36), nullable=False),
        sa.Column("working_host", sa.String(36)),
        sa.Column("engine", sa.String(255), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("claimed_at", sa.DateTime, nullable=False),
        sa.Column("heartbeat", sa.DateTime, nullable=False),
        sa.UniqueConstraint("working_host", name="masakari_ng_claims_working_uniq"),
        if_not_exists=True,
    )
    op.create_table(
        "masakari_ng_journal",
        sa.Column("vmove_uuid", sa.String(36), primary_key=True),
        sa.Column("notification_uuid", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("vm_state", sa.String(64)),
        sa.Column("compare_state", sa.String(64)),
        sa.Column("stop_after", sa.Boolean, nullable=False),
        sa.Column("error_after", sa.Boolean, nullable=False),
        sa.Column("locked", sa.Boolean, nullable=False),
        sa.Column("evacuate_sent", sa.Boolean, nullable=False),
        sa.Column("target", sa.String(255)),
        if_not_exists=True,
    )
    for name, table, columns in _INDEXES:
        op.create_index(name, table, columns, if_not_exists=True)
