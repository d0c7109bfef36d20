<?php

use App\Leads\ContactController;
use Illuminate\Support\Facades\Route;

Route::get('contact', [ContactController::class, 'show']);
// Without a session, or what a visitor wrote would be lost whose session has ended, and whenever sessions cannot be stored. Anybody
// may send this form, so a forged request can do no more.
Route::post('contact', [ContactController::class, 'store'])->withoutMiddleware('web');
Route::view('contact/thanks', 'thanks');
