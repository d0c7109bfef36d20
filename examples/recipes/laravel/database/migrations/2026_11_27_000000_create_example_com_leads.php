<?php

use App\Leads\LeadsServiceProvider;
use Illuminate\Database\Migrations\Migration;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Schema;
use LeadIntake\Outbox\Dialect;
use LeadIntake\Outbox\Outbox;

return new class extends Migration {
    public function up(): void
    {
        $dialect = match (DB::connection()->getDriverName()) {
            'sqlite' => Dialect::SQLite,
            'pgsql' => Dialect::PostgreSQL,
            default => Dialect::MySQL,
        };
        foreach (Outbox::schema($dialect, LeadsServiceProvider::TABLE) as $statement) {
            DB::statement($statement);
        }
    }

    /** Refuses to drop the table while a lead is unsent or unread. */
    public function down(): void
    {
        if (DB::table(LeadsServiceProvider::TABLE)->whereNotNull('capture')->exists()) {
            throw new RuntimeException('the table has unsent or unread leads: run php artisan leads report');
        }
        Schema::drop(LeadsServiceProvider::TABLE);
        Schema::dropIfExists(LeadsServiceProvider::TABLE . '_memo');
    }
};
