SELECT url('http://169.254.169.254/') FROM events
