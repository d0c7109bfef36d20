<?php

return [
    'default' => 'sqlite',
    'connections' => [
        'sqlite' => ['driver' => 'sqlite', 'database' => database_path('website.sqlite'), 'prefix' => ''],
    ],
    'migrations' => 'migrations',
];
