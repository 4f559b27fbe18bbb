"""Where in the picture a label's name finds what it names, and how sure of the place it is.

Safe while the previous version of the code is running, because the new columns may be null and
it names the columns that it writes. The way back drops the public schema, whose views read them;
the upgrade of the previous version makes it again.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

COLUMNS = ("box_x", "box_y", "box_w", "box_h", "attention_entropy")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("labels", sa.Column(name, sa.Double()), schema="core")


def downgrade() -> None:
    op.execute("drop schema if exists reel cascade")
    for name in reversed(COLUMNS):
        op.drop_column("labels", name, schema="core")
