<?php

use App\Leads\ContactController;
use App\Leads\LeadsPageController;
use Illuminate\Support\Facades\Route;

Route::get('contact', [ContactController::class, 'show']);
// The form has no session: an ended session, or a failure to store one, would lose the visitor's text. Anybody may send this form, so a
// forged request gains nothing.
Route::post('contact', [ContactController::class, 'store'])->withoutMiddleware('web');
Route::view('contact/thanks', 'thanks');
// The page has no token of 'web'. It sends a header and JSON instead, which no page of another website can send.
Route::match(['get', 'post'], 'office/leads', LeadsPageController::class)->withoutMiddleware('web');
