<?php

declare(strict_types=1);

namespace App\Leads;

use Illuminate\Console\Scheduling\Schedule;
use Illuminate\Foundation\Http\Middleware\ConvertEmptyStringsToNull;
use Illuminate\Foundation\Http\Middleware\TrimStrings;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Route;
use Illuminate\Support\ServiceProvider;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Outbox;

/** Registers the contact form, and the commands for the leads that it stores. */
final class LeadsServiceProvider extends ServiceProvider
{
    /** The table of the outbox, named after this website. */
    public const TABLE = 'example_com_leads';

    public function register(): void
    {
        $this->app->singleton(LeadIntakeClient::class, fn () => new LeadIntakeClient(
            config('lead-intake.url'),
            config('lead-intake.key'),
            deadlineSeconds: 10,
        ));
        // Each outbox gets the current connection, because Laravel opens another one after an outage of the database.
        $this->app->bind(Outbox::class, fn () => new Outbox(DB::connection()->getPdo(), self::TABLE));
    }

    public function boot(): void
    {
        // Keeps a visitor's text unchanged in the form and in the message.
        $isContact = fn (Request $request) => $request->is('contact');
        TrimStrings::skipWhen($isContact);
        ConvertEmptyStringsToNull::skipWhen($isContact);

        Route::middleware('web')->group(base_path('routes/contact.php'));
        $this->commands(LeadsCommand::class);
        $this->callAfterResolving(Schedule::class, function (Schedule $schedule): void {
            // Passes may overlap, because each leases different leads. withoutOverlapping() would keep the lock of a killed pass for a day.
            $schedule->command('leads send')->everyMinute();
            $schedule->command('leads report')->daily()->emailWrittenOutputTo(config('lead-intake.report_to'));
        });
    }
}
