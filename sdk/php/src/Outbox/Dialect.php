<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** The SQL that a database speaks. */
enum Dialect
{
    case SQLite;

    /** MariaDB as well. */
    case MySQL;
    case PostgreSQL;
}
