<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** The SQL dialect of a database. */
enum Dialect
{
    case SQLite;

    /** Also MariaDB. */
    case MySQL;
    case PostgreSQL;
}
