<?php

use App\Leads\ContactController;
use Illuminate\Foundation\Http\Middleware\PreventRequestForgery;
use Illuminate\Foundation\Http\Middleware\VerifyCsrfToken;
use Illuminate\Support\Facades\Route;

Route::get('contact', [ContactController::class, 'show']);
// Anybody may send this form, so a forged request can do no more. A token would lose what a visitor wrote whose session has ended.
Route::post('contact', [ContactController::class, 'store'])->withoutMiddleware([VerifyCsrfToken::class, PreventRequestForgery::class]);
Route::view('contact/thanks', 'thanks');
