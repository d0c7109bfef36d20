<?php

$server = [
    'host' => env('DB_HOST'),
    'port' => env('DB_PORT'),
    'database' => env('DB_DATABASE'),
    'username' => env('DB_USERNAME'),
    'password' => env('DB_PASSWORD'),
    'prefix' => '',
];

return [
    'default' => env('DB_CONNECTION', 'sqlite'),
    'connections' => [
        'sqlite' => ['driver' => 'sqlite', 'database' => database_path('website.sqlite'), 'prefix' => ''],
        'mysql' => ['driver' => 'mysql', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci'] + $server,
        'pgsql' => ['driver' => 'pgsql', 'charset' => 'utf8'] + $server,
    ],
    'migrations' => 'migrations',
];
