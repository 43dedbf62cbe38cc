"""Add the reserved host to the journal of masakari-ng"""

import sqlalchemy as sa
from alembic import op

revision = "ng0002"
down_revision = "ng0001"
branch_labels = None


def upgrade():
    # MariaDB keeps each statement at once: a run that was ended in the middle can be repeated.
    columns = sa.inspect(op.get_bind()).get_columns("masakari_ng_journal")
    if "target" not in {column["name"] for column in columns}:
        op.add_column("masakari_ng_journal", sa.Column("target", sa.String(255)))
