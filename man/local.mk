dist_man_MANS += man/sbx.1 man/sbx-run.1 man/sbx-doctor.1 man/sbx-learn.1 man/sbx-security.7
dist_man_MANS += man/sbx-policy.5
dist_man_MANS += man/sbx-proxy.8
