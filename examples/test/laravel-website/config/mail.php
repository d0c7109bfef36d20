<?php

return ['default' => 'log', 'mailers' => ['log' => ['transport' => 'log']], 'from' => ['address' => 'website@example.com', 'name' => 'Website']];
