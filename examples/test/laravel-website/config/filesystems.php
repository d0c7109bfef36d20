<?php

return ['default' => 'local', 'disks' => []];
