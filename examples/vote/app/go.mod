module github.com/storeplane/storeplane/examples/vote/app

go 1.26.0
