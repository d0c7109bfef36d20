<?php

use App\Leads\ContactController;
use Illuminate\Support\Facades\Route;

Route::get('contact', [ContactController::class, 'show']);
Route::post('contact', [ContactController::class, 'store']);
Route::view('contact/thanks', 'thanks');
