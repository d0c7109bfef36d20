<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Thank you</title>
<h1>Thank you</h1>
<p>We will get back to you.</p>
</html>
