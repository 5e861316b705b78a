# Completions, under the name that the program is installed by.
completions = contrib/completions/sbx.bash contrib/completions/_sbx contrib/completions/sbx.fish
EXTRA_DIST += $(completions)

# sbx doctor names it.
apparmordir = $(pkgdatadir)/apparmor
dist_apparmor_DATA = contrib/apparmor/sbx

bash_completions = $(datadir)/bash-completion/completions
zsh_completions = $(datadir)/zsh/site-functions
fish_completions = $(datadir)/fish/vendor_completions.d
installed_name = `echo sbx | sed '$(transform)'`

install-data-hook:
	$(MKDIR_P) $(DESTDIR)$(bash_completions) $(DESTDIR)$(zsh_completions) $(DESTDIR)$(fish_completions)
	name=$(installed_name); put() { \
	  sed "s/\\bsbx\\b/$$name/g" $(srcdir)/contrib/completions/$$1 >"$(DESTDIR)$$2" && chmod 644 "$(DESTDIR)$$2"; }; \
	put sbx.bash "$(bash_completions)/$$name" && put _sbx "$(zsh_completions)/_$$name" && \
	put sbx.fish "$(fish_completions)/$$name.fish"

uninstall-hook:
	name=$(installed_name); rm -f "$(DESTDIR)$(bash_completions)/$$name" "$(DESTDIR)$(zsh_completions)/_$$name" \
	  "$(DESTDIR)$(fish_completions)/$$name.fish"

EXTRA_DIST += tests/installcheck
installcheck-local:
	$(srcdir)/tests/installcheck "$(DESTDIR)$(bindir)" "$(DESTDIR)$(mandir)" "$(installed_name)"
