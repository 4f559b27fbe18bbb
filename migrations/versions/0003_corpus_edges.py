"""What an edge over many videos has beside the others: how many, how alike, and where to look.

Safe while the previous version of the code is running, because the new columns have defaults and
it names the columns that it writes. The way back drops the public schema, whose views read them;
the upgrade of the previous version makes it again.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("causal_edges", sa.Column("num_videos", sa.Integer()), schema="core")
    op.add_column("causal_edges", sa.Column("heterogeneity", sa.Double()), schema="core")
    op.add_column(
        "causal_edges",
        sa.Column(
            "examples",
            postgresql.JSONB(),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        schema="core",
    )


def downgrade() -> None:
    op.execute("drop schema if exists reel cascade")
    op.drop_column("causal_edges", "examples", schema="core")
    op.drop_column("causal_edges", "heterogeneity", schema="core")
    op.drop_column("causal_edges", "num_videos", schema="core")
