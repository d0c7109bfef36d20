from django.db import connection, migrations, models
from lead_intake.outbox import set_up_sql

from leads.outbox import TABLE


class Migration(migrations.Migration):
    initial = True

    operations = [
        migrations.RunSQL(
            set_up_sql(connection.vendor, TABLE), f"DROP TABLE {TABLE}; DROP TABLE IF EXISTS {TABLE}_memo"
        ),
        # For the admin's pages; it creates no table.
        migrations.CreateModel(
            name="StoredLead",
            fields=[
                ("idempotency_key", models.CharField(max_length=36, primary_key=True, serialize=False)),
                ("capture", models.TextField(null=True)),
                ("state", models.CharField(max_length=16)),
                ("attempts", models.IntegerField()),
                ("created_at", models.BigIntegerField()),
                ("next_attempt_at", models.BigIntegerField()),
                ("settled_at", models.BigIntegerField(null=True)),
                ("lead_id", models.CharField(max_length=36, null=True)),
                ("reason", models.CharField(max_length=1000, null=True)),
            ],
            options={
                "managed": False,
                "db_table": TABLE,
                "verbose_name": "lead that needs a person",
                "verbose_name_plural": "leads that need a person",
            },
        ),
    ]
