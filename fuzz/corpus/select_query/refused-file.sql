SELECT * FROM file('/etc/passwd', 'CSV')
